// Gradio looks for what listens to each of its components in the targets of all events, a hundred thousand pairs here, and asks Svelte for
// every part of every pair: a quarter of what a page costs to load. Svelte leaves arrays alone that are of no plain kind, and what they hold,
// and no event ever changes. Runs before Gradio's own script.
{
  class Fixed extends Array {}
  /** @type {Window["gradio_config"]} */
  let config;
  Object.defineProperty(window, "gradio_config", {
    configurable: true,
    get: () => config,
    set: (/** @type {Window["gradio_config"]} */ given) => {
      config = given;
      for (const event of given?.dependencies ?? []) event.targets = Fixed.from(event.targets);
      if (given?.dependencies) given.dependencies = Fixed.from(given.dependencies);
    },
  });
}
