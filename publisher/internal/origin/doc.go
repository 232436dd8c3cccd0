// Package origin reads the site to publish, and checks its manifest against its root.
package origin
