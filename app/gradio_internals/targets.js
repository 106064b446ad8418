// Gradio looks for what listens to each of its components in the targets of all events, a hundred thousand pairs here, and asks Svelte for
// every part of every pair: a sixth of what a page costs to load. Svelte leaves arrays alone that are of no plain kind, and no event's targets
// ever change. Runs before Gradio's own script.
{
  class Targets extends Array {}
  /** @type {Window["gradio_config"]} */
  let config;
  Object.defineProperty(window, "gradio_config", {
    configurable: true,
    get: () => config,
    set: (/** @type {Window["gradio_config"]} */ given) => {
      config = given;
      for (const event of given?.dependencies ?? []) event.targets = Targets.from(event.targets);
    },
  });
}
