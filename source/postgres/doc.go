// Package postgres reads a snapshot from the database of an indexer.
package postgres

import _ "github.com/jackc/pgx/v5/pgxpool"
