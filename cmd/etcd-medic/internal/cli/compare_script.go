package cli

import (
	"context"
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/repair/extract"
)

// compareScript writes the changes from the first source to the second as a script. It reports if the script lacks
// keys.
func compareScript(ctx context.Context, o *compareOptions, opts compare.Options) error {
	var script *extract.ChangeScript
	begin := func(w compare.ChangeWindow) (err error) {
		what := fmt.Sprintf("Gives a cluster with the keys of %s (revision %d) the keys of %s.", w.From, w.FromRevision,
			w.To)
		script, err = extract.NewChangeScript(o.io.Out, w.To, what, w.ToRevision, w.TTLs)
		return err
	}
	err := compare.Changes(ctx, o.specs[0], o.specs[1], opts, begin, func(c diff.Change) error {
		if c.Delete {
			return script.Delete(c.Key)
		}
		return script.Put(c.Key, c.Value, c.Lease)
	})
	o.io.clearStatus()
	if err != nil {
		return err
	}
	if err := script.Close(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(o.io.Err, "%s to delete, %d to put\n", plural.Of(script.Deletes, "key", "keys"), script.Puts)
	for _, k := range script.Skipped {
		_, _ = fmt.Fprintf(o.io.Err, "key %q contains a zero byte, which a command line cannot hold; it is not in "+
			"the script\n", k)
	}
	switch {
	case len(script.Skipped) > 0:
		return result(ExitInconclusive)
	case script.Deletes+script.Puts > 0:
		return result(ExitFindings)
	}
	return nil
}
