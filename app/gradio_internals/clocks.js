// Gradio's clocks of work under way ask for every frame, and that of its loading screen goes on for ever: an idle page would be drawn sixty times
// a second for nothing. They tick once a second; whatever else asks for a frame gets it. Runs before Gradio's own script.
{
  const CLOCK = /performance\.now\(\)-[\w$]+\([\w$]+\)\)\/1e3\),[\w$]+&&[\w$]+\(\)/;
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (run) => (CLOCK.test(String(run)) ? setTimeout(run, 1001) : frame(run));
}
