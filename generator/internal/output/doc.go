// Package output renders the objects of a site, on all cores and in order, into a folder, a tar
// file, memory or nothing. It adds the manifest and the root that list them, and compares the site
// with the live one.
package output
