package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/regular"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// metricsHead is how every file of metrics begins that this program writes.
const metricsHead = "# HELP etcd_medic_"

// claimMetrics refuses a path for metrics that holds anything but metrics, because the file is replaced, and one inside
// a data dir. A folder of backups may hold the metrics as well.
func claimMetrics(path string, sources []evidence.Spec) error {
	if path == "" {
		return nil
	}
	for _, s := range sources {
		if fi, err := os.Stat(s.Where); err == nil && fi.IsDir() && !isDataDir(s.Where) {
			continue
		}
		if err := datadir.Outside(path, s); err != nil {
			return err
		}
	}
	f, _, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, len(metricsHead))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if !bytes.HasPrefix([]byte(metricsHead), head[:n]) {
		return refusal.New("name a new file, or one with metrics of etcd-medic",
			"%s holds something else than metrics, and is not replaced", path)
	}
	return nil
}

// isDataDir reports whether a folder is a data dir, or a part of one.
func isDataDir(dir string) bool {
	for _, part := range []string{"member", "wal", "snap", "db"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err == nil {
			return true
		}
	}
	return false
}
