package extract

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/etcd-medic/etcd-medic/shell"
)

// ChangeScript writes a shell script that turns the keys of one member into those of another, with etcdctl del and put.
// It is like a script of the format Put.
type ChangeScript struct {
	w       *bufio.Writer
	ttls    map[int64]int64
	granted map[int64]bool
	// Deletes and Puts count the commands. Skipped are keys that a command line cannot contain (they have a zero byte).
	Deletes, Puts int
	Skipped       [][]byte
}

// NewChangeScript starts a script. Its head names source, revision and what the script does. ttls are the TTLs of
// leases in seconds; the script grants each lease again on first use.
func NewChangeScript(w io.Writer, source, what string, revision int64, ttls map[int64]int64) (*ChangeScript, error) {
	s := &ChangeScript{w: bufio.NewWriterSize(w, 256<<10), ttls: ttls, granted: map[int64]bool{}}
	_, err := fmt.Fprintf(s.w, scriptHead, shell.Comment(source), revision, shell.Comment(what))
	return s, err
}

// Delete removes a key.
func (s *ChangeScript) Delete(key []byte) error {
	if s.skip(key) {
		return nil
	}
	s.Deletes++
	before, word := shell.Script(key)
	_, err := s.w.WriteString(before + `"$etcdctl" del -- ` + word + " >/dev/null\n")
	return err
}

// Put puts a key, with its lease if it has one.
func (s *ChangeScript) Put(key, value []byte, lease int64) error {
	if s.skip(key) {
		return nil
	}
	s.Puts++
	name := ""
	if lease != 0 {
		name = "lease_" + strconv.FormatUint(uint64(lease), 16)
		if !s.granted[lease] {
			s.granted[lease] = true
			if _, err := fmt.Fprintf(s.w, "%s=$(grant %d)\n", name, max(s.ttls[lease], 1)); err != nil {
				return err
			}
		}
	}
	_, err := s.w.Write(appendPut(nil, key, value, name))
	return err
}

// Close ends the script.
func (s *ChangeScript) Close() error { return s.w.Flush() }

func (s *ChangeScript) skip(key []byte) bool {
	if bytes.IndexByte(key, 0) < 0 {
		return false
	}
	s.Skipped = append(s.Skipped, bytes.Clone(key))
	return true
}

// appendPut writes the lines that put one key. lease names the shell variable of its lease, "" for none.
func appendPut(b, key, value []byte, lease string) []byte {
	before, word := shell.Script(key)
	b = append(b, before...)
	if len(value) > 0 { // etcdctl does not accept an empty stdin as a value
		b = append(b, "printf '"...)
		b = append(shell.AppendPrintf(b, value), "' | "...)
	}
	b = append(b, `"$etcdctl" put `...)
	if lease != "" {
		b = append(append(append(b, `--lease="$`...), lease...), `" `...)
	}
	b = append(b, "-- "...)
	b = append(b, word...)
	if len(value) == 0 {
		b = append(b, " '' </dev/null"...)
	}
	return append(b, " >/dev/null\n"...)
}
