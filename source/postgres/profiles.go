package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/source"
)

// A keptProfile is a line of the profiles file.
type keptProfile struct {
	Address string
	ENS     site.Profile
}

// keepProfiles reads the profiles into an unlinked file, so that the transaction need not wait for
// their consumer.
func (r *Reader) keepProfiles(ctx context.Context) error {
	r.progress.Stage("profiles", 0)
	file, err := os.CreateTemp("", "followpress-profiles-*")
	if err != nil {
		return err
	}
	r.profiles = file
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	if !r.schema.hasTable("ens_metadata") {
		r.warn("there is no table ens_metadata: accounts have no profiles")
		return nil
	}
	out := bufio.NewWriterSize(file, 256<<10)
	var last source.Profile // the latest of several rows with one address counts
	flush := func() error {
		if last.ENS.Name == "" {
			return nil
		}
		line, err := json.MarshalWithOption(keptProfile{last.Address.String(), last.ENS}, json.DisableHTMLEscape())
		if err != nil {
			return err
		}
		r.report.Profiles++
		r.progress.Add(1)
		_, err = out.Write(append(line, '\n'))
		return err
	}
	err = r.eachOf(ctx, r.profileQuery(), profileRows, func(v [][]byte) error {
		address, err := site.ParseAddress(v[0])
		if err != nil {
			r.ignore("profile of something that is no address")
			return nil //nolint:nilerr // counted
		}
		p, err := r.profile(address, v)
		if err != nil {
			return err
		}
		if p.Address == last.Address && !rules.IsNewer(p.ENS.Fresh, last.ENS.Fresh) && last.ENS.Name != "" {
			return nil
		}
		if p.Address != last.Address {
			if err := flush(); err != nil {
				return err
			}
		}
		last = p
		return nil
	})
	if err = errors.Join(err, flush(), out.Flush()); err != nil {
		return err
	}
	r.size, err = file.Seek(0, io.SeekEnd)
	return err
}

// maxText is the longest accepted string of a profile, and of all its records together, in bytes.
// Longer ones are omitted: a row of a snapshot is limited, and anybody can write a profile.
const maxText = 512 << 10

// profileRows limits the profiles in a batch, so that it fits in memory if each has five strings of
// that length.
const profileRows = 32

// profileQuery selects address, name, avatar, header, display, records, time of update, and the
// number of strings that were too long. Some databases lack columns or have other types.
func (r *Reader) profileQuery() string {
	column := func(name, otherwise string) string {
		if r.schema.has("ens_metadata", name) {
			return name
		}
		return otherwise
	}
	records := "NULL"
	if strings.HasPrefix(r.schema.columns["ens_metadata"]["records"], "json") {
		records = "records::text"
	}
	texts := []string{"avatar", column("header", "NULL"), column("display", "NULL"), records}
	var short, long []string
	for _, text := range texts {
		length := "coalesce(octet_length(" + text + "), 0)"
		short = append(short, fmt.Sprintf("CASE WHEN %s <= %d THEN %s END", length, maxText, text))
		long = append(long, fmt.Sprintf("(%s > %d)::int", length, maxText))
	}
	return `SELECT lower(left(address, 50)), name, ` + strings.Join(short, ", ") + `, ` + millis("updated_at") + `, ` + strings.Join(long, " + ") + `, ` + impossible("updated_at") + `
FROM public.ens_metadata WHERE name <> '' AND octet_length(name) <= ` + strconv.Itoa(maxText) + ` ORDER BY lower(address) COLLATE "C", address COLLATE "C"`
}

// profile decodes a row of profileQuery about an account. It omits records that are not an object.
func (r *Reader) profile(account site.Address, v [][]byte) (p source.Profile, err error) {
	p.Address = account
	p.ENS = site.Profile{Name: string(v[1]), Avatar: string(v[2]), Header: string(v[3]), Display: string(v[4])}
	if p.ENS.Display == "" {
		p.ENS.Display = p.ENS.Name
	}
	if v[6] != nil {
		if p.ENS.Fresh, err = strconv.ParseInt(string(v[6]), 10, 64); err != nil {
			return p, err
		}
	}
	if string(v[8]) == "t" {
		r.ignore(impossibleTime)
	}
	if string(v[7]) != "0" {
		r.ignore("long texts of a profile")
	}
	p.ENS.Records = append(p.ENS.Records, v[5]...)
	normal, err := p.ENS.Normalize()
	if err != nil {
		r.ignore("records of a profile that are no object")
		p.ENS.Records = nil
		normal, err = p.ENS.Normalize()
	}
	if normal.NoTexts > 0 {
		r.report.Ignored["entries of records that are no texts"] += uint64(normal.NoTexts)
	}
	p.ENS = normal
	return p, err
}

// Profiles yields the profiles of the database, after Write. It may be called several times.
func (r *Reader) Profiles() source.Profiles {
	return func(yield func(source.Profile, error) bool) {
		if r.profiles == nil {
			return
		}
		in := bufio.NewReaderSize(io.NewSectionReader(r.profiles, 0, r.size), 256<<10)
		for {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			var kept keptProfile
			if err == nil {
				err = json.Unmarshal(line, &kept)
			}
			p := source.Profile{ENS: kept.ENS}
			if err == nil {
				p.Address, err = site.ParseAddress(kept.Address)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}
