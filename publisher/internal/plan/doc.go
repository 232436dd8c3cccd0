// Package plan says what makes a bucket equal to a site, and in which order: from the manifests of both, or from a survey.
// It changes nothing.
package plan
