// Package purger makes caches in front of a bucket drop what a publish has changed. It knows
// CloudFront, Cloudflare, Fastly, and every cache that accepts the method PURGE.
//
// URLs derives a Purge from the keys of changed objects: the URLs whose answers may have changed.
// A Purger cuts it into requests within the documented limits of its service, sends them, and
// retries them. The package does not read the environment and does not know buckets.
//
// # Purge too much rather than too little
//
// The queries that a cache has seen are unknown, and no key says which lists a user has. So searches are purged by
// path, and the searches of all users together. If a service cannot do that, or if not all changes are known,
// everything is purged.
//
// # Stability
//
// The API may change in any release.
package purger
