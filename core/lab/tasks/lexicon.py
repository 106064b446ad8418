"""The words and sentence patterns that `prose` composes noise from.

Drawn up for this project. Two rules hold, and tests keep them: every word is a single token of the
all-MiniLM-L6-v2 tokenizer, and none is a person, an object or a place of `story`. A slot in braces is a key
of LEXICON; {who}, {he}, {his}, {him} are the paragraph's person. Verbs stand in the past tense, where
singular and plural agree.
"""

from __future__ import annotations

from dataclasses import dataclass


def _split(words: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in words.split("|"))


LEXICON: dict[str, tuple[str, ...]] = {
    "role": _split(
        "bishop | widow | doctor | pilot | judge | priest | tailor | fisherman | gardener | nurse | clerk |"
        " captain | painter | carpenter | merchant | lawyer | teacher | sailor | soldier | cook | poet |"
        " singer | printer | butcher | hunter | shepherd | miner | farmer | banker | mason | surgeon |"
        " secretary | detective | student | blacksmith | chemist | dancer | dealer | landlord | weaver |"
        " surveyor"
    ),
    "nature": _split(
        "old | young | tall | quiet | patient | cheerful | stubborn | careful | tired | friendly | nervous |"
        " proud | modest | curious | stern | gentle | clever | honest | restless | solemn | practical |"
        " lonely | generous | cautious | polite | silent | brave | weary | kindly | serious"
    ),
    "when": _split(
        "in the early spring | toward evening | on the first cold morning | before the bells rang | by the"
        " end of the week | late in the autumn | after the rain | at the turn of the year | that winter | one"
        " bright afternoon | on the longest day of summer | when the harvest was over | during the second"
        " week of frost | a little before noon | some days later | on the eve of the fair | long after"
        " midnight | as the light failed | at the beginning of March | through most of October | in those"
        " years | while the snow lasted | once the roads were dry | on a Sunday | between two storms | in the"
        " grey hour before dawn | for the whole of that season | about the middle of June | soon after the"
        " holiday | when the swallows returned | at low tide | on market days | as the month closed | in the"
        " heat of August | with the first warm rain"
    ),
    "tail": _split(
        "as it had always been | though nobody had asked for it | and that was the end of the matter | and"
        " the dogs barked until dark | which surprised nobody | and the children talked of nothing else | as"
        " if the world had no other business | and so the week passed | for reasons of economy | with more"
        " patience than skill | and the neighbours nodded | without a word of complaint | as the custom was |"
        " and the smoke rose straight up | which pleased the elder people | though the price was high | and"
        " there was laughter in the street | and then the wind changed | in spite of every warning | with the"
        " windows wide open | and few remembered why | as far as anyone could tell | to the comfort of"
        " everyone | and it was soon forgotten | while the clock struck nine | and the crows made their usual"
        " noise | because there was nothing else to do | and a few old men wept | until the lamps were lit |"
        " as in the stories of our fathers"
    ),
    "thing": _split(
        "thin rain | white fog | bitter wind | soft snow | heavy cloud | pale sun | long frost | warm haze |"
        " sudden storm | slow thunder | silver mist | hard hail | gentle breeze | dull heat | strange calm |"
        " cold spray | dry gale | great silence | wet cold | yellow light"
    ),
    "moved": _split(
        "hung over | crept across | settled on | drifted above | passed over | swept | covered | moved along"
        " | lay upon | rolled over | lingered on | came down on"
    ),
    "land": _split(
        "the lower meadows | the roofs | the eastern hills | the empty fields | the valley | the far bank |"
        " the sleeping town | the high moor | the old road | the narrow streets | the water | the salt marsh"
        " | the long ridge | the pastures | the wooden bridges | the vineyards | the pine woods"
    ),
    "water": _split(
        "the river | the stream | the current | the brown water | the flood | the slow channel | the tide |"
        " the deep pool below the bend | the side arm"
    ),
    "flowed": _split(
        "rose | fell | turned | slowed | spread | whispered | ran clear | ran thick with mud | wandered |"
        " pressed on | shone | darkened | widened | grew loud"
    ),
    "by_river": _split(
        "between the trees | past the broken dam | over the stones | toward the sea | along the muddy bank |"
        " around the islands | below the cliffs | through the tall grass | beside the cattle path | behind"
        " the timber yard | against the piers | among the roots of the oaks"
    ),
    "boat": _split(
        "barge | raft | fishing boat | flat boat | steamer | narrow canoe | coal boat | grain ship | small"
        " ferry | timber raft | sailing boat"
    ),
    "ware": _split(
        "wool | salt | barley | copper | linen | timber | honey | leather | silk | corn | iron | tobacco |"
        " paper | wax | tin | rye | cotton | sugar | lamp oil | dried fish | coarse cloth | roof slate |"
        " glass | brick | rope | hides | pepper | coal"
    ),
    "trade": _split(
        "bought | sold | weighed | counted | praised | refused | stored | ordered | measured | exchanged |"
        " shipped | inspected | borrowed | promised | packed"
    ),
    "amount": _split(
        "forty sacks of | a whole cart of | three boxes of | nine barrels of | the last of the | half a load"
        " of | a small parcel of | two wagons of | a dozen bundles of | more than enough | very little | the"
        " best of the | a season of | twenty chests of | the usual share of"
    ),
    "price": _split(
        "at a fair price | at a loss | for silver | on credit | for twice the sum | below the counter |"
        " against a written promise | for ready money | before the tax was raised | by the pound | without a"
        " profit | at the risk of ruin | for a handful of coins"
    ),
    "kin": _split(
        "sister | brother | cousin | father | mother | uncle | aunt | nephew | daughter | son | old teacher |"
        " former partner | neighbour | godfather | niece"
    ),
    "paper": _split(
        "letter | note | short message | long letter | card | telegram | bill | list | petition | complaint |"
        " receipt | request | warning | second letter"
    ),
    "wrote": _split(
        "wrote | read aloud | folded | burned | copied | kept | hid | answered | opened | tore up |"
        " translated | signed | sealed | carried about | framed"
    ),
    "news": _split(
        "of a wedding in the south | of a fever in the north | about the new railway | of debts and repairs |"
        " about the birth of twins | of a quiet funeral | about the price of land | of a journey by sea |"
        " about an election | of an old quarrel | about a stolen horse | of the great comet | about the"
        " school | of an inheritance | about the winter stores | of a house by the lake | about a lame donkey"
        " | of better times"
    ),
    "dish": _split(
        "barley soup | fried eel | rye bread | roast goose | bean stew | apple cake | smoked trout | onion"
        " pie | sour milk | red cabbage | plum pudding | goat cheese | mushroom soup | corn bread | cherry"
        " cake | cold ham | pea soup | honey cake | potato salad | nut bread | white sausage"
    ),
    "cooked": _split(
        "cooked | baked | served | shared | tasted | praised | burned | warmed | seasoned | carved | passed"
        " around | spoiled | prepared | ate | offered | refused"
    ),
    "drink": _split(
        "apple juice | black tea | weak coffee | dark beer | red wine | hot milk | rose tea | plum brandy |"
        " cold water | sweet wine | herb tea"
    ),
    "with_food": _split(
        "with butter and salt | with too much pepper | from a wooden bowl | by the open fire | at the long"
        " table | for the whole street | with a spoon of cream | on a tin plate | for eleven guests | with"
        " garlic and lemon | under the chestnut trees | with the last of the mustard | in complete silence"
    ),
    "said": _split(
        "said | answered | whispered | repeated | cried | remarked | muttered | insisted | admitted | called"
        " | explained | argued | declared | confessed | murmured"
    ),
    "speech": _split(
        "A dry year makes honest neighbours | Nobody ever drowned in a story | The water remembers every"
        " stone | You can not hurry a slow horse | My father would have laughed at that | There is always one"
        " more winter | Silver is heavy when the road is long | We have seen worse and slept well | The young"
        " ones will learn it soon enough | A good fire asks no questions | I have never trusted a quiet wind"
        " | It costs nothing to wait | Tell me that again when the snow is gone | The best bread is eaten"
        " standing | Every bridge is a kind of promise | They say so every spring | I would not sell it for a"
        " kingdom | Half of that is true | Rain is only late sunshine | The fish know more than the council |"
        " A letter is a slow visit | We should have built it of stone | Leave the dead their peace | Let the"
        " children sing | Some debts are paid in patience | It was colder when I was young | He that counts"
        " twice sleeps once | I only believe what I can carry"
    ),
    "manner": _split(
        "with a shrug | after a long pause | in a low voice | without looking up | with great dignity |"
        " through the open window | over a second glass | half asleep | with a sudden smile | for the third"
        " time | to nobody in particular | in the dialect of the hills | with both hands raised | very slowly"
    ),
    "idea": _split(
        "patience | grief | luck | memory | silence | pride | hope | distance | fear | friendship | time |"
        " courage | regret | habit | faith | justice | hunger | love | work | loss | wonder | freedom |"
        " forgiveness | doubt | duty"
    ),
    "like": _split(
        "a river in flood | a door left open | a coat worn thin | an old song | the weight of wet sand | a"
        " bird in a dark room | bread without salt | a road after rain | a long winter | the shadow of a"
        " cloud | a stone in the shoe | the smell of smoke | a neighbour who never leaves | a borrowed horse"
        " | the noise of the sea | a half written page | a garden in November | the last light on the snow"
    ),
    "thought": _split(
        "thought about | argued about | feared | hoped for | dreamed of | complained of | wondered about |"
        " remembered | learned | avoided | understood | measured"
    ),
    "years": _split(
        "ten years | many years | a whole summer | half a lifetime | two generations | a single night | seven"
        " winters | an hour | a month of rain"
    ),
    "place": _split(
        "on the old bridge | near the ferry steps | in the back room | behind the church | at the crossroads"
        " | by the village well | under the great oak | along the harbour wall | at the edge of the woods |"
        " beside the stove | in the school garden | outside the inn | on the hill road | in the long shed"
    ),
    "deed": _split(
        "tied a net | lit a pipe | counted the geese | swept the steps | repaired the fence | painted a"
        " shutter | fed the pigeons | sharpened a knife | watched the boats | cut the hedge | carried water |"
        " drew a map of the coast | sang to the cattle | planted beans | washed the windows | slept in a"
        " chair | split wood | rang a small bell | tuned the old piano | chased the goats | measured the snow"
        " | wrote down the tides | dried a sail | waited for news"
    ),
}


@dataclass(frozen=True, slots=True)
class ParagraphSubject:
    """One kind of paragraph: openings that introduce the person, and sentences in any order."""

    openings: tuple[str, ...]
    middles: tuple[str, ...]


SUBJECTS = (
    ParagraphSubject(
        (
            "{when}, a {thing} {moved} {land}, and {who} {deed}, {tail}.",
            "a {thing} {moved} {land} {when}, and {who} stood {place} and {thought} {idea}.",
            "{when}, {who} looked up from {his} work, for a {thing} {moved} {land}.",
        ),
        (
            "{when}, the sky cleared, and a {thing} {moved} {land}, {tail}.",
            "first a {thing} {moved} {land}, then a {thing}, {tail}.",
            "{he} had seen a {thing} like this only once before, {when}.",
            "a {thing} {moved} {land}, {tail}.",
            "the temperature {place} fell, rose a little, and fell again, {tail}.",
            "{he} {deed} {when}, although a {thing} {moved} {land}.",
            "never had a {thing} lasted so long in {years}, {he} {said}.",
            "the weather turned {when}, and {he} {deed} {place}.",
        ),
    ),
    ParagraphSubject(
        (
            "{when}, {water} {flowed} {by_river}, and {who} {deed} {place}.",
            "{who} knew {water} better than anyone, and {when} it {flowed} {by_river}.",
            "{when}, a {boat} came slowly {by_river}, and {who} waved from the bank, {tail}.",
        ),
        (
            "{water} {flowed} {by_river}, {tail}.",
            "a {boat} loaded with {ware} passed {by_river}, and behind it {water} {flowed}.",
            "{he} tied up the {boat} {by_river} and {deed}, {tail}.",
            "{when}, {water} {flowed} again, this time {by_river}.",
            "it took {years} to learn how {water} {flowed} {by_river}, and {he} had learned it.",
            "the crew of a {boat} {cooked} {dish} {by_river}, {tail}.",
            "some said that {water} {flowed} because of {idea}, and {he} let them talk.",
            "{he} watched a {boat} turn {by_river}, {when}.",
        ),
    ),
    ParagraphSubject(
        (
            "{when}, {who} {trade} {amount} {ware} {price}, {tail}.",
            "the trade in {ware} was poor {when}, and {who} {trade} {amount} {ware} {price}.",
            "{who} had lived by {ware} for {years}, and {when} {he} {trade} {amount} {ware}.",
        ),
        (
            "{he} {trade} {amount} {ware} {price}, {tail}.",
            "a {role} from the coast {trade} {amount} {ware} {price}, {when}.",
            "nobody wanted {ware} then, but {ware} went {price}, {tail}.",
            "{his} {kin} {trade} {amount} {ware} and spoke for {years} of little else.",
            "{when}, {ware} came down by {boat}, and {he} {trade} {amount} {ware} {price}.",
            "between {ware} and {ware}, {he} {said}, there is only the difference of {idea}.",
            "the books were closed {when}, and {he} {deed} {place}.",
            "two carts of {ware} stood {place} for {years}, {tail}.",
        ),
    ),
    ParagraphSubject(
        (
            "{when}, {who} {wrote} a {paper} {news}, {tail}.",
            "a {paper} {news} reached {who} {when}, and {he} read it {place}.",
            "{who} {wrote} one {paper} after another {when}, mostly {news}.",
        ),
        (
            "{his} {kin} {wrote} a {paper} {news}, {tail}.",
            "{he} {wrote} the {paper} {when} and {thought} {idea}.",
            "the {paper} was {news}, and not a line of it was {news}.",
            "it had been {years} since a {paper} came {news}.",
            "{he} {wrote} the {paper} {place}, {tail}.",
            "to {his} {kin} {he} sent a {paper} {news}, and a pound of {ware}.",
            "{when}, the post brought a {paper} {news}, {tail}.",
            "every {paper} from {his} {kin} began with the weather: a {thing} {moved} {land}.",
        ),
    ),
    ParagraphSubject(
        (
            "{when}, {who} {cooked} {dish} {with_food}, {tail}.",
            "there was {dish} {when}, and {who} {cooked} it {with_food}.",
            "{who} kept {drink} for guests and {when} {cooked} {dish} {with_food}.",
        ),
        (
            "{he} {cooked} {dish} {with_food}, {tail}.",
            "after the {dish} came {dish}, and after that {drink}, {tail}.",
            "{his} {kin} {cooked} {dish} {when}, {with_food}.",
            "they drank {drink} {place} and {thought} {idea}.",
            "in lean years there was {dish} {with_food}, in good years {dish} and {drink}.",
            "the secret of {dish}, {he} {said}, is {idea}.",
            "{he} paid for the {drink} with {ware}, {tail}.",
            "somebody {cooked} {dish} {with_food} and {deed}, {tail}.",
        ),
    ),
    ParagraphSubject(
        (
            "“{speech},” {said} {who} {manner}, {when}.",
            "{when}, {who} sat {place} and talked {manner}. “{speech},” {he} {said}.",
            "“{speech},” {who} {said} {place}, {tail}.",
        ),
        (
            "“{speech},” {he} {said} {manner}.",
            "“No {idea} without {idea},” {said} {his} {kin}, and {he} {deed}.",
            "a {role} who had {thought} {idea} for {years} only laughed, {tail}.",
            "“{speech}, and {idea} is like {like},” came the answer {manner}.",
            "they talked about {ware} and about {idea}, {tail}.",
            "{he} nodded {manner}, and {when} {he} {deed}.",
            "“{speech},” the {nature} {role} {said}, and poured {drink}.",
            "the talk turned to a {boat} and then to a {paper} {news}.",
        ),
    ),
    ParagraphSubject(
        (
            "{who} often {thought} {idea} {when}, and {place} it seemed like {like}.",
            "{when}, {who} {deed} and {thought} {idea}, {tail}.",
            "for {years} {who} had {thought} {idea}, and now {idea} was like {like}.",
        ),
        (
            "{idea} is like {like}, {he} {said}, and {idea} is like {like}.",
            "{he} {thought} {idea} as others {thought} {idea}, {tail}.",
            "what {he} {thought} {place} was neither {idea} nor {idea}.",
            "without {idea} there is no {idea}, and {he} had {years} to consider it.",
            "{when}, {his} {kin} {deed} {place}, and even that looked like {like}.",
            "perhaps {idea} comes of {idea}, as {dish} comes of hunger, {tail}.",
            "{he} {deed} {place} and asked nobody about {idea}.",
            "it seemed to {him} {when} that {idea} was only {idea} grown old.",
        ),
    ),
)

TITLES = (
    "Of {idea} and {ware}",
    "The {thing}",
    "A {paper} {news}",
    "The {nature} {role}",
    "{dish} and {drink}",
    "The {boat} {by_river}",
    "{when}",
    "What the {role} {said}",
)
