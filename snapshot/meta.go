package snapshot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
)

// maxMetaBytes is the maximum size of meta.json, which names at most 64 chains.
const maxMetaBytes = 64 << 10

// readMeta decodes meta.json.
func readMeta(snapshot afero.Fs, into any) (err error) {
	file, err := snapshot.Open(table.MetaName)
	if err != nil {
		return fmt.Errorf("read meta.json: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	body, err := io.ReadAll(io.LimitReader(file, maxMetaBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("read meta.json: %w", err)
	case len(body) > maxMetaBytes:
		return fmt.Errorf("meta.json: more than %d KiB", maxMetaBytes>>10)
	}
	if err := json.Unmarshal(bytes.TrimPrefix(body, lines.ByteOrderMark), into); err != nil {
		return fmt.Errorf("meta.json: %s", site.JSONReason(err))
	}
	return nil
}

// Meta is meta.json without the format version.
type Meta struct {
	AsOf    time.Time
	ListOps *uint64    // nil for none
	OpsFrom *time.Time // time since which the table ops is complete; nil if it is complete or missing

	// Inputs of the snapshot, as far as its source knows them.
	Chains   []site.ChainInput  // in any order; none if unknown
	Profiles *site.ServiceInput // nil for none
	Badges   *site.ServiceInput // nil for none
}

// ReadAsOf returns the time of the snapshot from meta.json, unchanged, as RFC 3339.
func ReadAsOf(snapshot afero.Fs) (asOf string, err error) {
	var meta struct {
		Format int    `json:"format"`
		AsOf   string `json:"as_of"`
	}
	if err := readMeta(snapshot, &meta); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not there: is this the folder of a snapshot? name the one that holds meta.json and the tables", realName(snapshot, table.MetaName))
	} else if err != nil {
		return "", err
	}
	if meta.Format > format {
		return "", fmt.Errorf("meta.json: format %d, this version reads %d; update followpress, which is older than the snapshot", meta.Format, format)
	}
	if meta.Format != format {
		return "", fmt.Errorf("meta.json: format %d, this version reads %d", meta.Format, format)
	}
	if _, err := time.Parse(time.RFC3339, meta.AsOf); err != nil {
		return "", fmt.Errorf("meta.json: as_of %q is not a time like 2026-01-31T00:00:00Z (RFC 3339)", meta.AsOf)
	}
	return meta.AsOf, nil
}

// ReadListOps returns the count list_ops of meta.json, or nil.
func ReadListOps(snapshot afero.Fs) (*uint64, error) {
	var meta struct {
		ListOps *uint64 `json:"list_ops"`
	}
	err := readMeta(snapshot, &meta)
	return meta.ListOps, err
}

// ReadOpsFrom returns ops_from of meta.json, the time since which the table ops is complete, unchanged, as RFC 3339;
// "" means that it is complete.
func ReadOpsFrom(snapshot afero.Fs) (from string, err error) {
	var meta struct {
		OpsFrom *string `json:"ops_from"`
	}
	if err := readMeta(snapshot, &meta); err != nil || meta.OpsFrom == nil {
		return "", err
	}
	if _, err := rowjson.ParseTime("ops_from", *meta.OpsFrom); err != nil {
		return "", fmt.Errorf("meta.json: %w", err)
	}
	return *meta.OpsFrom, nil
}

// ReadInputs returns Chains, Profiles and Badges of meta.json. Other members are not set.
func ReadInputs(snapshot afero.Fs) (site.Inputs, error) {
	var members struct { // other members are ignored, valid or not
		Chains   json.RawMessage `json:"chains,omitempty"`
		Profiles json.RawMessage `json:"profiles,omitempty"`
		Badges   json.RawMessage `json:"badges,omitempty"`
	}
	if err := readMeta(snapshot, &members); err != nil {
		return site.Inputs{}, err
	}
	var told site.Inputs
	body, err := json.Marshal(members)
	if err == nil {
		err = told.UnmarshalJSON(body)
	}
	if err != nil {
		return site.Inputs{}, fmt.Errorf("meta.json: %w", err)
	}
	return told, nil
}

// format is the version of the snapshot format that this package supports.
const format = 1

// realName returns the path of a snapshot's file if the snapshot is in a folder.
func realName(snapshot afero.Fs, name string) string {
	if folder, ok := snapshot.(interface {
		RealPath(name string) (string, error)
	}); ok {
		if path, err := folder.RealPath(name); err == nil {
			return path
		}
	}
	return name
}

func encodeMeta(m Meta) ([]byte, error) {
	if m.AsOf.IsZero() {
		return nil, errors.New("meta.json: as_of: missing")
	}
	b := strconv.AppendUint([]byte(`{"format":`), format, 10)
	b, err := rowjson.AppendTime(append(b, `,"as_of":`...), "as_of", m.AsOf.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("meta.json: %w", err)
	}
	if m.ListOps != nil {
		b = strconv.AppendUint(append(b, `,"list_ops":`...), *m.ListOps, 10)
	}
	if m.OpsFrom != nil {
		if b, err = rowjson.AppendTime(append(b, `,"ops_from":`...), "ops_from", m.OpsFrom.UnixMilli()); err != nil {
			return nil, fmt.Errorf("meta.json: %w", err)
		}
	}
	if b, err = appendInputs(b, m); err != nil {
		return nil, fmt.Errorf("meta.json: %w", err)
	}
	return append(b, "}\n"...), nil
}

// appendInputs appends the members with the snapshot's inputs.
func appendInputs(b []byte, m Meta) ([]byte, error) {
	told := struct {
		Chains   []site.ChainInput  `json:"chains,omitempty"`
		Profiles *site.ServiceInput `json:"profiles,omitempty"`
		Badges   *site.ServiceInput `json:"badges,omitempty"`
	}{slices.Clone(m.Chains), m.Profiles, m.Badges}
	slices.SortFunc(told.Chains, func(a, b site.ChainInput) int { return cmp.Compare(a.ChainID, b.ChainID) })
	for i, c := range told.Chains {
		if i > 0 && c.ChainID == told.Chains[i-1].ChainID {
			return nil, fmt.Errorf("chains: duplicate chain %d", c.ChainID)
		}
	}
	members, err := json.MarshalWithOption(told, json.DisableHTMLEscape())
	if err != nil || len(members) == len("{}") {
		return b, err
	}
	return append(append(b, ','), members[1:len(members)-1]...), nil
}
