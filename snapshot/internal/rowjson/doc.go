// Package rowjson defines the tables of snapshots and reads and writes their rows as JSON. A Scanner reads the usual
// form of rows quickly; Decode functions read any other.
package rowjson
