package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth/issuer"
	"github.com/stele-id/stele/bulk/deposit"
	"github.com/stele-id/stele/giver"
	"github.com/stele-id/stele/registrar"
)

var (
	escrowKind         = kind{"name=URL", tableForm, readEscrow}
	escrowPrefixesKind = kind{"name=prefixes", tableForm, readEscrowPrefixes}
	escrowEveryKind    = kind{"name=duration", tableForm, readEscrowEvery}
	escrowFileKind     = kind{"name=file", tableForm, readEscrowFile}
)

// controlsKind is of servers by which it is known that this machine is not offline.
var controlsKind = kind{"URLs", listForm, readControl}

func readControl(_ *Setting, text string) (any, error) {
	if err := giver.CheckControl(text); err != nil {
		return nil, stele.Reason(err)
	}
	return text, nil
}

// usualEscrowEvery is after which time a deposit is made again, if the settings do not say it.
const usualEscrowEvery = 24 * time.Hour

// escrowPair cuts a pair of the name of deposits and a value.
func escrowPair(s *Setting, text string) (value string, err error) {
	name, value, _ := strings.Cut(text, "=")
	switch {
	case !issuer.IsName(name):
		return "", stele.Messagef("config.escrow-name-invalid", `"{name}" can't be the name of deposits, which has 1 to 20 of a-z, 0-9 and -, and begins with a letter or a digit`, name)
	case value == "":
		return "", stele.Messagef("config.escrow-value-missing", "a value for the deposits belongs here; an example is {example}", s.InFile(s.Example))
	}
	return value, nil
}

func readEscrow(s *Setting, text string) (any, error) {
	link, err := escrowPair(s, text)
	if err != nil {
		return nil, err
	}
	if _, err := deposit.ParsePlace(link); err != nil {
		return nil, stele.Reason(err)
	}
	return link, nil
}

func readEscrowPrefixes(s *Setting, text string) (any, error) {
	value, err := escrowPair(s, text)
	return value, err
}

func readEscrowEvery(s *Setting, text string) (any, error) {
	value, err := escrowPair(s, text)
	if err != nil {
		return nil, err
	}
	every, err := time.ParseDuration(value)
	if err != nil || every < deposit.LeastEvery || every > registrar.MostEvery {
		return nil, stele.Messagef("config.escrow-every-invalid", `"{value}" is not a time after which deposits are made again; write it as in 24h, from {least} to {most}`, value, deposit.LeastEvery, registrar.MostEvery)
	}
	return value, nil
}

func readEscrowFile(s *Setting, text string) (any, error) {
	name, err := escrowPair(s, text)
	if err != nil {
		return nil, err
	}
	return readFile(s, name)
}

// checkEscrow checks the settings of deposits against each other.
func (c *Config) checkEscrow() {
	places := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Escrow)) {
		if places[c.Escrow[name]] {
			c.Wrong("escrow", "config.escrow-twice", "{url} is named twice; choose a folder for each", c.Escrow[name])
		}
		places[c.Escrow[name]] = true
		if strings.HasPrefix(c.Escrow[name], "sftp:") && c.EscrowCredentials[name] == "" {
			c.Wrong("escrow", "config.escrow-key-missing", `the SFTP server of "{name}" needs the private key of its user; set escrow-credentials.{name}`, name)
		}
	}
	for setting, table := range map[string]map[string]string{"escrow-prefixes": c.EscrowPrefixes, "escrow-every": c.EscrowEvery, "escrow-credentials": c.EscrowCredentials} {
		for _, name := range slices.Sorted(maps.Keys(table)) {
			if _, ok := c.Escrow[name]; !ok {
				c.Wrong(setting, "config.escrow-unknown", `there are no deposits "{name}"; set escrow.{name}`, name)
			}
		}
	}
}

// Deposits returns the deposits that the settings ask for, in the order of their names. The caller says how places are reached.
func (v *Values) Deposits() (list []deposit.Entry, err error) {
	for _, name := range slices.Sorted(maps.Keys(v.Escrow)) {
		e := deposit.Entry{Name: name, Prefixes: SplitList(v.EscrowPrefixes[name]), Every: usualEscrowEvery, Access: deposit.Access{Credentials: v.EscrowCredentials[name], KnownHosts: deposit.KnownHosts(v.EscrowKnownHosts)}}
		if e.Place, err = deposit.ParsePlace(v.Escrow[name]); err != nil {
			return nil, err
		}
		if text := v.EscrowEvery[name]; text != "" {
			if e.Every, err = time.ParseDuration(text); err != nil {
				return nil, err
			}
		}
		list = append(list, e)
	}
	return list, nil
}
