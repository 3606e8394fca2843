package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
)

// place is where a registry is kept: the URL of a database, or else a folder.
type place struct {
	url    string
	folder string
}

// String names the place for people: without passwords.
func (l place) String() string {
	if l.url != "" {
		return config.RedactURL(l.url)
	}
	return l.folder
}

// kind is the word for what keeps the registry there.
func (l place) kind() string {
	if l.url != "" {
		return "PostgreSQL"
	}
	return "folder"
}

// flag is the part of a command line that names the place.
func (l place) flag() string {
	if l.url != "" {
		return "--store " + l.String()
	}
	return "--data " + l.String()
}

// place returns where the registry is that the flags name.
func (p *program) place() place {
	if p.store != "" {
		return place{url: p.store}
	}
	return place{folder: p.data}
}

// storeFlag adds the flag that names a database.
func (p *program) storeFlag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&p.store, "store", os.Getenv("STELE_STORE"), "`URL` of the PostgreSQL database of the registry, instead of a folder; its password is better in PGPASSWORD, or in ~/.pgpass (environment: STELE_STORE)")
	// It fails only for a flag that the command does not have.
	_ = root.RegisterFlagCompletionFunc("store", cobra.NoFileCompletions)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if dry := cmd.Flags().Lookup("dry-run"); dry != nil {
			p.rehearse = dry.Value.String() == "true"
		}
		err := p.settlePlace(cmd)
		p.settleSecrets()
		return err
	}
}

// settlePlace decides between a folder and a database. What is named on the command line
// wins over what the environment names.
func (p *program) settlePlace(cmd *cobra.Command) error {
	flags := cmd.Flags()
	p.named = flags.Changed("data") || os.Getenv("STELE_DATA") != ""
	if !flags.Changed("store") {
		if flags.Changed("data") {
			p.store = ""
		}
		return nil
	}
	if flags.Changed("data") {
		return misuse(cmd, "--store and --data each name a registry; keep one")
	}
	if err := config.CheckStore(p.store); err != nil {
		return misuse(cmd, "--store: %w", err)
	}
	return nil
}

// parsePlace reads a place as it stands on a command line.
func parsePlace(text string) (place, error) {
	if !config.IsDatabase(text) {
		if text == "" {
			return place{}, errors.New("a folder or the URL of a database belongs here")
		}
		return place{folder: text}, nil
	}
	err := config.CheckStore(text)
	return place{url: text}, err
}

// open opens the store at a place.
func (l place) open(ctx context.Context, p *program, log *slog.Logger, brief bool) (stele.Store, error) {
	if l.url == "" {
		return l.openFolder(ctx, p, pebble.Options{Now: p.now, Log: log, Brief: brief, Existing: !p.create})
	}
	if err := config.CheckStore(l.url); err != nil {
		return nil, refuse("open", stele.Invalid, "STELE_STORE: %w", err)
	}
	return postgres.Open(ctx, l.url, postgres.Options{Now: p.now, Log: log, Brief: brief})
}

// openFolder opens the store in a folder. If it makes a new one it says so on standard
// error: a person who meant another folder sees it at once.
func (l place) openFolder(ctx context.Context, p *program, o pebble.Options) (stele.Store, error) {
	there, err := pebble.Exists(l.folder)
	if err != nil {
		return nil, err
	}
	if !there && !o.Existing {
		if err := p.refuseSecond(l.folder); err != nil {
			return nil, err
		}
		if p.rehearse {
			fmt.Fprintf(p.stderr, "stele: there is no registry in %s yet; the dry run takes an empty one\n", printable(l.folder))
			return mem.New(p.now), nil
		}
	}
	store, err := pebble.Open(ctx, l.folder, o)
	if errors.Is(err, stele.NotFound) {
		return nil, p.explainMissing(l.folder, err)
	}
	if err != nil {
		return nil, err
	}
	if !there {
		whole, err := filepath.Abs(l.folder)
		if err != nil {
			whole = l.folder
		}
		fmt.Fprintf(p.stderr, "stele: made a new registry in %s\n", printable(whole))
	}
	return store, nil
}

// refuseSecond refuses to make a registry in the default folder on a machine whose server
// keeps its own elsewhere: the administrator most likely means that one.
func (p *program) refuseSecond(folder string) error {
	if p.named || p.machineConfig == "" {
		return nil
	}
	if _, err := os.Stat(p.machineConfig); err != nil {
		return nil // it is not there, or not for this user
	}
	c := config.Load(p.machineConfig, nil, nil)
	at := place{url: c.Store, folder: c.Data}
	if at.url == "" {
		mine, err1 := filepath.Abs(folder)
		theirs, err2 := filepath.Abs(at.folder)
		if err1 != nil || err2 != nil || mine == theirs || at.folder == "" {
			return nil
		}
	}
	return refuse("open", stele.Conflict, "there is no registry in %.200q, and a second one is not made: the registry of this machine is %s, as %s says; add %s, or --server with the address of its server (to make a second registry here, add --data %s)",
		folder, at, p.machineConfig, at.flag(), folder)
}

// explainMissing adds to the error of a folder without a registry what the folder has
// instead, if that can be told.
func (p *program) explainMissing(folder string, err error) error {
	if postgres.IsBackup(folder) {
		return refuse("open", stele.NotFound, "there is no registry in %.200q: it is a backup of a database; 'stele verify %s' checks it, and 'stele restore' puts it into an empty database", folder, folder)
	}
	return err
}

// exists makes sure that there is a registry at the place. Of a database that is told
// when it is opened.
func (l place) exists() error {
	if l.url != "" {
		return nil
	}
	there, err := pebble.Exists(l.folder)
	if err == nil && !there {
		err = refuse("open", stele.NotFound, "there is no registry in %.200q; %s", l.folder, pebble.HowToFind)
	}
	return err
}

// isSame reports whether two places are one, as far as that can be told from here.
func (l place) isSame(other place) (bool, error) {
	if l.url != "" || other.url != "" {
		return l.url == other.url, nil
	}
	if filepath.Clean(l.folder) == filepath.Clean(other.folder) {
		return true, nil
	}
	return sameFolder(l.folder, other.folder)
}
