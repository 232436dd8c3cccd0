// Package output renders the objects of a site, on all cores and in their order, into a folder, a tar file, memory or
// nothing, with the manifest and the root that list them, and compares the site with the one that is there already.
package output
