// Server-sent events: what the server says while a page is open.

import { showError } from "./base.js";

const RETRY = 3000;

/** Listen to a stream: `works` has a function per kind of event, which gets its JSON.
 * The stream is closed while the page is hidden, because a browser opens few of them at a time; when the page is seen
 * again the stream begins anew. Returns a function that ends it. */
export function listen(path, works) {
  let source = null;
  let timer = null;
  let lost = false;

  const open = () => {
    clearTimeout(timer);
    if (source || document.hidden) return;
    source = new EventSource(path);
    source.onopen = () => {
      if (lost) showError("");
      lost = false;
    };
    source.onerror = () => {
      if (source?.readyState !== EventSource.CLOSED && lost) return;
      lost = true;
      showError("The studio does not answer; is heedful ui still running?");
      if (source?.readyState === EventSource.CLOSED) {
        close();
        timer = setTimeout(open, RETRY);
      }
    };
    for (const [name, work] of Object.entries(works)) {
      source.addEventListener(name, (event) => work(JSON.parse(event.data)));
    }
  };
  const close = () => {
    source?.close();
    source = null;
  };
  const follow = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", follow);
  open();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    clearTimeout(timer);
    close();
  };
}
