package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/compare/serverlog"
)

// serverLogs are the values of --server-log, NAME=FILE.
type serverLogs struct{ args []string }

const serverLogHelp = "log of the server that wrote a source, as NAME=FILE: plain, JSON, an export of journald, or " +
	"from kubectl logs; .gz too; repeatable"

func (l *serverLogs) flag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&l.args, "server-log", nil, serverLogHelp)
}

// read reads all logs; nil if none was given.
func (l *serverLogs) read(ctx context.Context) (map[string]*serverlog.Journal, error) {
	if len(l.args) == 0 {
		return nil, nil
	}
	out := map[string]*serverlog.Journal{}
	for _, a := range l.args {
		name, file, ok := strings.Cut(a, "=")
		if !ok || name == "" || file == "" {
			return nil, usagef("want --server-log NAME=FILE, with the NAME of a source",
				"--server-log %s does not say whose it is", a)
		}
		if out[name] != nil {
			return nil, usagef("join the files", "--server-log: two logs of %s", name)
		}
		j, err := readServerLog(ctx, file)
		if err != nil {
			return nil, fmt.Errorf("server log of %s: %w", name, err)
		}
		out[name] = j
	}
	return out, nil
}

func readServerLog(ctx context.Context, file string) (*serverlog.Journal, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	r, err := unpackLog(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	j, err := serverlog.Read(ctx, r)
	if err == nil && j.Lines == 0 {
		err = fmt.Errorf("%s is empty", file)
	}
	return j, err
}

// unpackLog returns the text of a log, which may be packed with gzip whatever its name is: a rotated log or stdin.
func unpackLog(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	switch {
	case errors.Is(err, io.EOF) || err == nil && string(head) != "\x1f\x8b":
		return b, nil
	case err != nil:
		return nil, err
	}
	return gzip.NewReader(b)
}
