// The search of the site runs in a worker, and browsers start none for a page that is a file on this machine. There, the
// worker's script runs in a hidden frame instead.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement('iframe');
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const load = (address) =>
        new Promise((loaded, failed) => {
          const script = inside.document.createElement('script');
          Object.assign(script, { src: address, onload: loaded, onerror: failed });
          inside.document.body.append(script);
        });
      inside.importScripts = async (...addresses) => {
        for (const address of addresses) await load(address);
      };
      inside.postMessage = (data) => {
        const message = new MessageEvent('message', { data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      this.inside = inside;
      this.loaded = load(new URL(url, location).href);
    }

    postMessage(data) {
      this.loaded.then(() => {
        const message = new MessageEvent('message', { data: structuredClone(data) });
        this.inside.dispatchEvent(message);
        this.inside.onmessage?.(message);
      });
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
