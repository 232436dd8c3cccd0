package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	json "github.com/goccy/go-json"
)

// A Stage is a part of a run of a command.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Items   int64   `json:"items"` // rows, objects or requests, 0 if they are not counted
	Bytes   int64   `json:"bytes"` // read or written, 0 if they are not counted
}

func rate(s Stage) Text {
	if s.Bytes == 0 || s.Seconds == 0 {
		return "–"
	}
	return size(int64(float64(s.Bytes)/s.Seconds)) + "/s"
}

// A figure is a number or text of a report, with the path to it.
type figure struct{ Name, Value Text }

// mostFigures bounds the figures of a page, and mostElements those of one array.
const (
	mostFigures  = 500
	mostElements = 10
)

// A namedStage is a Stage as a template gets it.
type namedStage struct {
	Stage
	Name Text
}

// A runView is what the template of a run gets.
type runView struct {
	Title        Text
	Times, Bytes *chart
	Stages       []namedStage
	Figures      []figure
	Omitted      int
}

// RunPage renders the report of a run as a page: time and bytes by stage, and all figures of its JSON.
func RunPage(title string, body []byte, stages []Stage) ([]byte, error) {
	f := &figures{decoder: json.NewDecoder(bytes.NewReader(body))}
	f.decoder.UseNumber()
	if err := f.value(""); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	named := make([]namedStage, len(stages))
	for i, s := range stages {
		named[i] = namedStage{s, plain(s.Name)}
	}
	v := runView{plain(title), timeline(stages), stageBytes(stages), named, f.all, f.omitted}
	return render("run", v)
}

func timeline(stages []Stage) *chart {
	total, begun := 0.0, 0.0
	for _, s := range stages {
		total += s.Seconds
	}
	rows := make([]bar, len(stages))
	for i, s := range stages {
		share := 0.0
		if total > 0 {
			share = 100 * s.Seconds / total
		}
		text := textf("%.2f s, %.0f %%", s.Seconds, share)
		rows[i] = bar{Label: plain(s.Name), Value: text, Parts: []part{{begun, gap, ""}, {s.Seconds, "s1", plain(s.Name) + ": " + text}}}
		begun += s.Seconds
	}
	return bars("times", "Time by stage", nil, rows)
}

func stageBytes(stages []Stage) *chart {
	var rows []bar
	for _, s := range stages {
		if s.Bytes > 0 {
			rows = append(rows, bar{Label: plain(s.Name), Value: size(s.Bytes), Parts: []part{{float64(s.Bytes), "s4", plain(s.Name) + ": " + size(s.Bytes)}}})
		}
	}
	return bars("bytes", "Bytes by stage", nil, rows)
}

// figures flattens JSON, in its order.
type figures struct {
	decoder *json.Decoder
	all     []figure
	omitted int
}

func (f *figures) add(name, value string) {
	if len(f.all) == mostFigures {
		f.omitted++
		return
	}
	f.all = append(f.all, figure{shorten(name), shorten(value)})
}

func (f *figures) value(path string) error {
	token, err := f.decoder.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return f.object(path)
	case json.Delim('['):
		return f.array(path)
	case nil:
		f.add(path, "–")
	default:
		f.add(path, strings.TrimSpace(fmt.Sprint(token)))
	}
	return nil
}

func (f *figures) object(path string) error {
	for f.decoder.More() {
		token, err := f.decoder.Token()
		if err != nil {
			return err
		}
		name := fmt.Sprint(token)
		if path != "" {
			name = path + "." + name
		}
		if err := f.value(name); err != nil {
			return err
		}
	}
	_, err := f.decoder.Token()
	return err
}

func (f *figures) array(path string) error {
	n := 0
	for ; f.decoder.More(); n++ {
		if n < mostElements {
			if err := f.value(fmt.Sprintf("%s[%d]", path, n)); err != nil {
				return err
			}
			continue
		}
		var skipped json.RawMessage
		if err := f.decoder.Decode(&skipped); err != nil {
			return err
		}
		f.omitted++
	}
	if n == 0 {
		f.add(path, "none")
	}
	_, err := f.decoder.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
