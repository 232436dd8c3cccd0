// The service worker: what was seen can be seen offline. The explorer's own files are kept as a
// whole, answers of the site as they come.

declare const FILES: string[];
declare const self: ServiceWorkerGlobalScope;
interface ServiceWorkerGlobalScope {
  addEventListener(type: string, listener: (event: never) => void): void;
}
void FILES;
void self;
export {};
