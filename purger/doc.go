// Package purger makes caches before a bucket forget what a publish has changed:
// CloudFront, Cloudflare, Fastly, Varnish, and whatever else takes the method PURGE.
//
// URLs turns the keys of changed objects into the URLs that show them. Each service
// says what requests that takes, within its documented limits, before any is made.
// Nothing here reads the environment or knows a bucket.
package purger
