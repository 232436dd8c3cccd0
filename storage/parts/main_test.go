package parts

import (
	"testing"
	"time"

	"github.com/followpress/followpress/storage/internal/storetest"
)

func TestMain(m *testing.M) {
	firstBackoff, patience = time.Millisecond, 500*time.Millisecond
	storetest.Main(m)
}
