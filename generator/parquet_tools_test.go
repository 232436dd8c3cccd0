package generator_test

import (
	"bufio"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// parquetTools are common writers of Parquet: name, folder of .tools/parquet, and name in write.py.
var parquetTools = []struct{ name, environment, tool string }{
	{"duckdb-1.3", "duckdb-1.3", "duckdb"}, {"duckdb-1.4", "duckdb-1.4", "duckdb"}, {"duckdb-2.0", "latest", "duckdb"},
	{"pyarrow", "latest", "pyarrow"}, {"pandas", "latest", "pandas"}, {"polars", "latest", "polars"}, {"fastparquet", "latest", "fastparquet"},
}

// parquetVariants change the rows of a table before a tool writes them; nil drops a row. Tools give
// columns of nulls, and lists without elements, particular types.
var parquetVariants = map[string]func(table string, row map[string]any) map[string]any{
	"all": func(_ string, row map[string]any) map[string]any { return row },
	"null": func(table string, row map[string]any) map[string]any {
		if table == "badges" {
			return nil
		}
		for _, optional := range []string{"user", "tags", "added", "primary_list", "ens", "class"} {
			delete(row, optional)
		}
		return row
	},
	"untagged": func(table string, row map[string]any) map[string]any {
		if table == "records" {
			row["tags"] = []string{}
		}
		return row
	},
}

// variantOf returns the demo in a variant.
func variantOf(t *testing.T, variant string) snapshot {
	t.Helper()
	s := snapshot{}
	names, err := fs.Glob(fixtures.Demo(), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(fixtures.Demo(), name)
		if err != nil {
			t.Fatal(err)
		}
		s[name] = string(text)
		table, isTable := strings.CutSuffix(name, ".ndjson")
		if !isTable {
			continue
		}
		var rows strings.Builder
		for lines := bufio.NewScanner(strings.NewReader(s[name])); lines.Scan(); {
			var row map[string]any
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			if row = parquetVariants[variant](table, row); row == nil {
				continue
			}
			line, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
			}
			rows.Write(append(line, '\n'))
		}
		s[name] = rows.String()
	}
	return s
}

// sameAsNDJSON compares the site of a snapshot with some tables as Parquet in a folder with the
// site from NDJSON.
func sameAsNDJSON(t *testing.T, s snapshot, want objects, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: got %d files and the error %v, want some", folder, len(files), err)
	}
	s = maps.Clone(s)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		delete(s, strings.TrimSuffix(name, ".parquet")+".ndjson")
		s[name] = string(body)
	}
	if got := inMemory(t, s, smallEFP); !maps.Equal(got, want) {
		t.Errorf("%s: the site is another than that of NDJSON", folder)
	}
}

// Files written by tools make the same site as NDJSON. internal/tools/parquet/write.py made them
// from the demo, with the command in its first lines.
func TestParquetOfTools(t *testing.T) {
	for variant := range parquetVariants {
		t.Run(variant, func(t *testing.T) {
			s := variantOf(t, variant)
			want := inMemory(t, s, smallEFP)
			for _, tool := range parquetTools {
				t.Run(tool.name, func(t *testing.T) { sameAsNDJSON(t, s, want, filepath.Join("testdata", "parquet", tool.name, variant)) })
			}
		})
	}
}

// Reading a file prints nothing, although the Parquet library warns about the pages of fastparquet.
func TestParquetIsReadInSilence(t *testing.T) {
	for variant := range parquetVariants {
		var stderr strings.Builder
		read := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestParquetOfTools$/^"+variant+"$/^fastparquet$")
		read.Stderr = &stderr
		if err := read.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("%s: got the error %v and printed %q, want nothing", variant, err, stderr.String())
		}
	}
}

// TestParquetOfEveryTool is TestParquetOfTools with all tables, written by the tools now.
func TestParquetOfEveryTool(t *testing.T) {
	servers.Nightly(t)
	for variant := range parquetVariants {
		s := variantOf(t, variant)
		want := inMemory(t, s, smallEFP)
		source := t.TempDir()
		var tables []string
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if table, isTable := strings.CutSuffix(name, ".ndjson"); isTable {
				tables = append(tables, table)
			}
			if err := os.WriteFile(filepath.Join(source, name), []byte(s[name]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, tool := range parquetTools {
			out := t.TempDir()
			python := filepath.Join("..", ".tools", "parquet", tool.environment, "bin", "python")
			arguments := append([]string{filepath.Join("..", "internal", "tools", "parquet", "write.py"), source, out, tool.tool}, tables...)
			if text, err := exec.CommandContext(t.Context(), python, arguments...).CombinedOutput(); err != nil {
				t.Fatalf("%s (make test-all installs it): %v: %s", tool.name, err, text)
			}
			sameAsNDJSON(t, s, want, out)
			if keep := os.Getenv("PARQUET_OUT"); keep != "" {
				if err := os.CopyFS(filepath.Join(keep, tool.name, variant), os.DirFS(out)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
