// Package replay turns ordered events into lists, records and primary lists. It alone decides what
// an event means and which events are ignored; all sources of events use it.
//
// The API may change in any release.
package replay
