// The package of the kit does not say that its files are ES modules. Node.js finds that out since 20.19; older
// versions, such as Debian 12's, must be told.
import { register } from 'node:module';

const load = `export const load = (url, context, next) =>
  next(url, url.includes('/ethereum-identity-kit/dist/esm/') ? { ...context, format: 'module' } : context);`;
register(`data:text/javascript,${encodeURIComponent(load)}`);
