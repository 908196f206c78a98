// Command pack compresses etcd servers for embedding. pack DIR PROGRAM... writes DIR/etcd-VERSION.zst for each and
// removes the old files of DIR. The version is that of the etcd module in the program.
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err) //nolint:forbidigo // a helper of the build, not a library
		os.Exit(1)                            //nolint:forbidigo // as above
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("want a folder and at least one program")
	}
	dir := args[0]
	old, err := filepath.Glob(filepath.Join(dir, "etcd-*.zst"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	for _, program := range args[1:] {
		if err := pack(dir, program); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	}
	return nil
}

func pack(dir, program string) error {
	version, err := serverVersion(program)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "etcd-"+version+".zst"), enc.EncodeAll(b, nil), 0o644)
}

// serverVersion reads the version of the etcd server module out of a program, which may be one for another machine.
func serverVersion(program string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	for _, d := range info.Deps {
		if d.Path == "go.etcd.io/etcd/server/v3" {
			return strings.TrimPrefix(d.Version, "v"), nil
		}
	}
	return "", errors.New("it is not an etcd server")
}
