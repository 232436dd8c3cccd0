package folder

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/publicdir"
	"github.com/followpress/followpress/storage/internal/object"
)

// Create creates the folder if it does not exist, and reports whether it did.
func (l *Local) Create(context.Context) (created bool, err error) {
	if _, err := os.Stat(l.path); err == nil {
		return false, nil
	}
	if err := publicdir.Make(afero.NewOsFs(), l.path); err != nil {
		return false, fmt.Errorf("make the folder: %w", err)
	}
	return true, nil
}

var errWebServer = fmt.Errorf("%w: a folder has no such rules; configure the web server", object.ErrUnsupported)

// AllowRead returns ErrUnsupported: a folder has no policy.
func (l *Local) AllowRead(context.Context, []string) error { return errWebServer }

// AllowOrigins returns ErrUnsupported: a folder has no CORS rules.
func (l *Local) AllowOrigins(context.Context) error { return errWebServer }
