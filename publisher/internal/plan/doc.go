// Package plan computes the changes that make a bucket equal to a site, and their order, from the
// manifests of both or from a survey. It changes nothing.
package plan
