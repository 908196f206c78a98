package copies

import (
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// Enough refuses with a *refusal.Error when the file system of dir, which need not exist yet, has less room than need
// bytes. room is disk.Room, or a test's stand-in; hint says what to do.
func Enough(dir string, need int64, room func(string) (free int64, ok bool), hint string) error {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
	}
	if free, ok := room(dir); ok && free < need {
		return refusal.New(hint, "%s are needed below %s, %s are free", plural.SizeUp(need), dir,
			plural.Size(free))
	}
	return nil
}

// OtherScratch is the hint where --scratch names the folder.
const OtherScratch = "free some, or name another folder with --scratch"
