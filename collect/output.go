package collect

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/refusal"
)

// output is the archive while it is written: a stream, or a file that gets its name when it is complete.
type output struct {
	*bufio.Writer
	f       *os.File
	partial string
	final   string
}

const outBuffer = 256 << 10

// create opens a new file next to the final one.
func (c *collection) create() (*output, error) {
	if c.o.Out == "-" {
		return &output{Writer: bufio.NewWriterSize(c.o.Stdout, outBuffer)}, nil
	}
	o := &output{partial: c.o.Out + ".partial", final: c.o.Out}
	//nolint:forbidigo // a new file outside of the data dir, as fill has checked
	//nolint:forbidigo // a new file outside of the data dir, which fill has made sure of
	f, err := os.OpenFile(o.partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, &refusal.Error{Reason: o.partial + " already exists", Hint: "another collection writes it, or " +
			"one was killed: in that case remove it"}
	}
	if err != nil {
		return nil, err
	}
	o.f = f
	o.Writer = bufio.NewWriterSize(f, outBuffer)
	return o, nil
}

// room refuses to start if the copy may not fit. Compression usually halves it, but that is not known before.
func (o *output) room(want int64) error {
	if o.f == nil {
		return nil
	}
	dir := filepath.Dir(o.final)
	if free := scratch.Budget(dir); want > free {
		return &refusal.Error{
			Reason: fmt.Sprintf("the copy may need %d MiB, but only %d MiB may be used in %s", want>>20,
				max(free, 0)>>20, dir),
			Hint: "choose -o on another disk, or -o - and send it over the network",
		}
	}
	return nil
}

// end renames a complete file and removes an incomplete one.
func (o *output) end(good bool) error {
	if o.f == nil {
		if !good {
			return nil
		}
		return o.Flush()
	}
	var err error
	if good {
		err = errors.Join(o.Flush(), o.f.Sync())
	}
	err = errors.Join(err, o.f.Close())
	if good && err == nil {
		if _, e := os.Lstat(o.final); e == nil {
			err = &refusal.Error{Reason: o.final + " already exists",
				Hint: "existing files are not overwritten: choose another file"}
		} else {
			return os.Rename(o.partial, o.final) //nolint:forbidigo // the file that create has opened
		}
	}
	return errors.Join(err, os.Remove(o.partial)) //nolint:forbidigo // the file that create has opened
}

var _ io.Writer = (*output)(nil)
