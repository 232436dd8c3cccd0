// Package replay turns ordered events into lists, records and primary lists. It is the one place
// that decides what an event means and what is ignored; all sources of events use it.
//
// The API may change until version 1.
package replay
