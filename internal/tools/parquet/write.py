"""Writes the tables of a snapshot as Parquet: write.py SNAPSHOT OUT TOOL TABLE...

A member that no row has is a column in which everything is null. The other tables are left out.
"""

import json
import os
import sys
import tempfile

MEMBERS = {
    "accounts": ["address", "primary_list", "ens"],
    "badges": ["event_id", "token_id", "owner"],
    "events": ["id", "fancy_id", "name", "event_url", "image_url", "country", "city", "description", "year", "start_date", "end_date", "expiry_date"],
    "lists": ["token_id", "owner", "user"],
    "ops": ["token_id", "time", "chain_id", "block", "log_index", "op"],
    "recommended": ["address", "class"],
    "records": ["token_id", "version", "record_type", "data", "tags", "added"],
}


def duckdb(rows, members, to):
    import duckdb

    with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)
        lines.flush()
        if rows:
            query = f"select * from read_json_auto('{lines.name}', format='newline_delimited')"
        else:
            query = "select " + ", ".join(f"null as {m}" for m in members) + " where false"
        duckdb.sql(f"COPY ({query}) TO '{to}' (FORMAT parquet)")


def pyarrow(rows, members, to):
    import pyarrow
    import pyarrow.parquet

    columns = {m: pyarrow.array([row[m] for row in rows]) for m in members}
    pyarrow.parquet.write_table(pyarrow.table(columns), to)


def pandas(rows, members, to):
    import pandas

    pandas.DataFrame(rows, columns=members).to_parquet(to)


def polars(rows, members, to):
    import polars

    polars.DataFrame(rows, schema=members, infer_schema_length=None).write_parquet(to)


def fastparquet(rows, members, to):
    import fastparquet
    import pandas

    fastparquet.write(to, pandas.DataFrame(rows, columns=members))


TOOLS = {f.__name__: f for f in (duckdb, pyarrow, pandas, polars, fastparquet)}


def main(source, out, tool, *tables):
    for table in tables:
        with open(os.path.join(source, table + ".ndjson")) as lines:
            rows = [json.loads(line) for line in lines]
        rows = [{m: row.get(m) for m in MEMBERS[table]} for row in rows]
        for row in rows:
            if row.get("ens") is not None:
                row["ens"] = json.dumps(row["ens"])
        TOOLS[tool](rows, MEMBERS[table], os.path.join(out, table + ".parquet"))


main(*sys.argv[1:])
