// Package purger makes caches in front of a bucket drop what a publish has changed. It knows
// CloudFront, Cloudflare, Fastly, Varnish, and every cache that accepts the method PURGE.
//
// URLs derives a Purge from the keys of changed objects: the URLs whose answers may have changed.
// A Purger cuts it into requests within the documented limits of its service, sends them, and
// retries them. The package does not read the environment and does not know buckets.
//
// The API may change until version 1.
package purger
