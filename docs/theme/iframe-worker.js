// Browsers let no page that was opened as a file start a worker, and the search runs in one. There, a hidden frame takes
// its place: it loads the same script, and messages go to and fro as events.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame.contentWindow;
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const element = frame.contentDocument.createElement("script");
      element.src = script;
      this.ready = new Promise((resolve) => element.addEventListener("load", resolve));
      frame.contentDocument.body.append(element);
    }

    async postMessage(data) {
      await this.ready;
      this.frame.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
