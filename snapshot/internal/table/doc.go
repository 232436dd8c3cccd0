// Package table reads the tables of a snapshot. It reads several files ahead, parses rows on several cores, and
// delivers them in order.
package table
