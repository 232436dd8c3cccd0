// Package server answers the requests of the API from a site. Most answers are objects of the site as
// they are. Three are computed: pages and term searches, from the search shards; records without
// tags; and refreshes (cache=fresh), which ask an upstream and store the result. Under site.APIEFP most
// requests with parameters are computed too, and batches of states.
//
// This package serves objects and bounds what is done at a time (gates.go). Below internal/, answer computes
// answers, fresh refreshes objects, cache holds them, and fetch reads them from the store.
//
// Preview and fallback serve the same Handler over different Stores. A Handler answers many requests
// at once and keeps no state that matters: what it refreshes is in the bucket before the answer goes
// out, so any number of handlers may serve one bucket.
//
// The API may change until version 1. The HTTP API that it answers is described by the OpenAPI
// document of package templates.
package server
