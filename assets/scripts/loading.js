// Gradio's sign that a page is being loaded counts its seconds, a frame each, and goes on when it has gone: 60 frames a second as long as
// the page is open. Its script keeps the function that it finds, so that one ends when the page is there; all others ask for theirs by name.

const { requestAnimationFrame } = window;
let loads = true;
window.requestAnimationFrame = (run) => (loads ? requestAnimationFrame(run) : 0);

export function over() {
  loads = false;
  window.requestAnimationFrame = requestAnimationFrame;
}
