package report

import (
	"io"
	"strings"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/report"
)

// WriteRun writes the report of a run with its stages: as a page if the file's name ends in .html, else as
// JSON. "" writes nothing.
func WriteRun(name, title string, run any, stages []command.Stage, stdout io.Writer) error {
	if !strings.HasSuffix(strings.ToLower(name), ".html") {
		return command.WriteReport(name, run, stdout)
	}
	body, err := command.EncodeReport(run)
	if err != nil {
		return err
	}
	shown := make([]report.Stage, len(stages))
	for i, s := range stages {
		shown[i] = report.Stage(s)
	}
	page, err := report.RunPage(title, body, shown)
	if err != nil {
		return err
	}
	return command.WriteFile(name, page, stdout)
}
