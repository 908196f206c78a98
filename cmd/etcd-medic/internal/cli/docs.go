package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare/cause"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

type docsOptions struct {
	dir, man string
	root     *cobra.Command
}

func newDocsCmd(_ *Streams, run func(context.Context, *docsOptions) error) *cobra.Command {
	o := &docsOptions{}
	cmd := &cobra.Command{
		Use:    "docs --dir DIR | --man DIR",
		Short:  "write the generated documents",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (o.dir == "") == (o.man == "") {
				return usagef("", "want --dir or --man")
			}
			o.root = cmd.Root()
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "folder for the generated documents in Markdown")
	cmd.Flags().StringVar(&o.man, "man", "", "folder for man pages, one for each command and topic")
	return cmd
}

// runDocs writes CHECKS.md, CAUSES.md and the command reference from the texts of the program.
func runDocs(_ context.Context, o *docsOptions) error {
	if o.man != "" {
		return manPages(o.root, o.man)
	}
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
	for _, f := range old { // pages of removed commands
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	untag(o.root)
	return doc.GenMarkdownTree(o.root, ref)
}

// manPages writes a page for each command and topic: man -l DIR/etcd-medic-diagnose.1. They have no date, so that
// builds are reproducible.
func manPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	untag(root)
	epoch := time.Unix(0, 0).UTC()
	head := func() *doc.GenManHeader {
		return &doc.GenManHeader{Section: "1", Source: "etcd-medic " + Version(), Manual: "etcd-medic manual",
			Date: &epoch}
	}
	for _, c := range root.Commands() {
		if !c.IsAdditionalHelpTopicCommand() {
			continue
		}
		var b bytes.Buffer
		if err := doc.GenMan(c, head(), &b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "etcd-medic-"+c.Name()+".1"), b.Bytes(),
			0o644); err != nil { //nolint:gosec // a public document
			return err
		}
	}
	return doc.GenManTree(root, head(), dir)
}

// untag omits the date from the generated pages, so that they depend only on the code.
func untag(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		untag(sub)
	}
}
