package surgery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// replayedDB is the database that results from the log at the source's consistent index, from the base or the log's
// first entry. It is built at most once; why says why it cannot be built.
type replayedDB struct {
	tried bool
	db    *dumpdb.DB
	dir   string
	why   error
}

func (b *rebuilder) fromLog() *dumpdb.DB {
	r := &b.log
	if r.tried {
		return r.db
	}
	r.tried = true
	w := b.w
	index := w.source().ConsistentIndex()
	logs := w.logs()
	if index == 0 || len(logs) == 0 {
		r.why = errors.New("no log was given")
		return nil
	}
	r.dir = filepath.Join(w.out.Path, ".replayed")
	if r.why = os.Mkdir(r.dir, 0o700); r.why != nil {
		return nil
	}
	out := filepath.Join(r.dir, "backup.db")
	var res *rebuild.Result
	res, r.why = rebuild.Run(b.ctx, rebuild.Options{Base: b.base, Logs: logs, To: rebuild.Target{Index: index},
		Out: out, Version: w.source().Version.Release(), Progress: w.o.Compare.Progress})
	if r.why == nil && res.DoubtfulCount > 0 {
		r.why = fmt.Errorf("the outcome of %s depends on more than the log shows",
			plural.Of(res.DoubtfulCount, "entry", "entries"))
	}
	if r.why == nil {
		r.db, r.why = dumpdb.Open(out)
	}
	return r.db
}

// close removes the scratch.
func (r *replayedDB) close() error {
	var err error
	if r.db != nil {
		err = r.db.Close()
	}
	if r.dir != "" {
		err = errors.Join(err, os.RemoveAll(r.dir))
	}
	return err
}
