package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Stage is a part of a command's run.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Items   int64   `json:"items"` // rows, objects or requests; 0 if not counted
	Bytes   int64   `json:"bytes"` // read or written; 0 if not counted
}

func rate(s Stage) Text {
	if s.Bytes == 0 || s.Seconds == 0 {
		return "–"
	}
	return size(int64(float64(s.Bytes)/s.Seconds)) + "/s"
}

// A figure is a number or text of a report, named by its path.
type figure struct{ Name, Value Text }

// Maximum numbers of figures on a page, and of elements of one array.
const (
	mostFigures  = 500
	mostElements = 10
)

// A namedStage is the input of a stage's template.
type namedStage struct {
	Stage
	Name Text
}

// A runView is the input of a run's template.
type runView struct {
	Title        Text
	Times, Bytes *chart
	Stages       []namedStage
	Figures      []figure
	Omitted      int
}

// RunPage renders the report of a run as a page: time and bytes by stage, and all figures of its JSON.
func RunPage(title string, body []byte, stages []Stage) ([]byte, error) {
	f := &figures{}
	if err := f.read(body); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	named := make([]namedStage, len(stages))
	for i, s := range stages {
		named[i] = namedStage{s, plain(s.Name)}
	}
	v := runView{plain(title), timeline(stages), stageBytes(stages), named, f.all, f.omitted}
	return render("run", v, "", "")
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

// figures flattens JSON, in document order.
type figures struct {
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

func (f *figures) read(body []byte) error {
	for d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); ; {
		within, n := d.StackIndex(d.StackDepth())
		next := d.PeekKind()
		if within == '[' && n >= mostElements && next != ']' {
			f.omitted++
			if err := d.SkipValue(); err != nil {
				return err
			}
			continue
		}
		token, err := d.ReadToken()
		switch isName := within == '{' && n%2 == 0; {
		case errors.Is(err, io.EOF) && d.InputOffset() > 0:
			return nil
		case err != nil:
			return err
		case next == ']' && n == 0:
			f.add(pathOf(d), "none")
		case isName, next == '{', next == '}', next == '[', next == ']':
		case next == 'n':
			f.add(pathOf(d), "–")
		default:
			f.add(pathOf(d), strings.TrimSpace(token.String()))
		}
	}
}

// pathOf returns the path of the last value, such as stages[0].name.
func pathOf(d *jsontext.Decoder) string {
	path, depth := "", 0
	for name := range d.StackPointer().Tokens() {
		depth++
		if within, _ := d.StackIndex(depth); within == '[' {
			name = "[" + name + "]"
		} else if path != "" {
			name = "." + name
		}
		path += name
	}
	return path
}
