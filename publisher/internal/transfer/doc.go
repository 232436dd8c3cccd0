// Package transfer carries out a plan: it puts and deletes objects, one or many per request.
package transfer
