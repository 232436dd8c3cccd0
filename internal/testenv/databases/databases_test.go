package databases_test

import (
	"testing"

	"github.com/followpress/followpress/internal/testenv/databases"
)

func TestServers(t *testing.T) {
	s := databases.Start(t)
	for _, schema := range []string{databases.SchemaV1, databases.SchemaV2} {
		databases.Exec(t, s.Database(t), schema)
	}
	r := s.Replica(t)
	databases.Exec(t, r.DSN("postgres"), "SELECT 1")
	databases.Exec(t, "postgres://anybody@"+s.Bouncer(t)+"/postgres?sslmode=disable&default_query_exec_mode=simple_protocol", "SELECT 1")
}
