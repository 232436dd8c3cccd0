package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	json "github.com/goccy/go-json"
)

// StandardOutput is the name of a report that goes to standard output.
const StandardOutput = "-"

// ReportInside reports whether the file of a report would be in a folder.
func ReportInside(report, folder string) bool {
	inside, err := filepath.Rel(folder, report)
	return err == nil && report != "" && report != StandardOutput && filepath.IsLocal(inside)
}

// WriteReport writes a report as JSON to the file with that name; "" writes nothing.
func WriteReport(name string, report any, stdout io.Writer) error {
	if name == "" {
		return nil
	}
	body, err := json.MarshalIndentWithOption(report, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	body = append(body, '\n')
	if name == StandardOutput {
		_, err = stdout.Write(body)
	} else {
		err = os.WriteFile(name, body, 0o644)
	}
	if err != nil {
		return errors.Join(errors.New("the run is done, but its report is not written"), err)
	}
	return nil
}
