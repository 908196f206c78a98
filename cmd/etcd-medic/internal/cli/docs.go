package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

type docsOptions struct {
	dir  string
	root *cobra.Command
}

func newDocsCmd(_ *Streams, run func(context.Context, *docsOptions) error) *cobra.Command {
	o := &docsOptions{}
	cmd := &cobra.Command{
		Use:    "docs --dir DIR",
		Short:  "write the generated documents",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.dir == "" {
				return usagef("", "--dir is missing")
			}
			o.root = cmd.Root()
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "folder to write to")
	return cmd
}

// runDocs writes CHECKS.md, CAUSES.md and the command reference from the same texts that the program shows.
func runDocs(_ context.Context, o *docsOptions) error {
	pages := map[string]func(io.Writer) error{
		"CHECKS.md": func(w io.Writer) error { return render.ChecksPage(w, check.All()) },
		"CAUSES.md": func(w io.Writer) error { return render.CausesPage(w, cause.All(), cause.Undetected()) },
	}
	for name, write := range pages {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	ref := filepath.Join(o.dir, "cli")
	if err := os.MkdirAll(ref, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(ref, "etcd-medic*.md"))
	if err != nil {
		return err
	}
	for _, f := range old { // pages of commands that are gone
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	untag(o.root)
	return doc.GenMarkdownTree(o.root, ref)
}

// untag leaves the date out of the generated pages: they are a function of the code alone.
func untag(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		untag(sub)
	}
}
