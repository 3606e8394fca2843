package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stele-id/stele/config"
)

// settingFlags gives a command the flags of all settings but those that every verb
// has.
func settingFlags(cmd *cobra.Command, inherited ...string) {
	list := config.All()
	for i := range list {
		s := &list[i]
		if slices.Contains(inherited, s.Name) {
			continue
		}
		flag := cmd.Flags().VarPF(&settingFlag{setting: s, text: s.Usual}, s.Name, "", s.What)
		switch {
		case s.IsBool():
			flag.NoOptDefVal = "true"
			choices(cmd, s.Name, "true", "false")
		case s.Choices != nil:
			choices(cmd, s.Name, s.Choices...)
		case s.IsFile():
			_ = cmd.RegisterFlagCompletionFunc(s.Name, completeNames)
		case s.IsFolder():
			_ = cmd.RegisterFlagCompletionFunc(s.Name, completeFolders)
		}
	}
}

// completeNames lets the shell complete names of files.
func completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// settingFlag is the value of a flag. A flag of a list or a table may be repeated.
type settingFlag struct {
	setting *config.Setting
	text    string
	given   bool
}

func (f *settingFlag) String() string { return f.text }

// Type is what cobra's help prints behind the name.
func (f *settingFlag) Type() string {
	switch {
	case f.setting.IsBool():
		return "bool" // so that it may stand alone
	case f.setting.Repeats():
		return f.setting.Word()
	}
	return strings.ToLower(f.setting.Word())
}

func (f *settingFlag) Set(text string) error {
	if _, err := f.setting.Read(text); err != nil {
		return err
	}
	if f.given && f.setting.Repeats() {
		text = f.text + " " + text
	}
	f.text, f.given = text, true
	return nil
}

// givenSettings returns the settings among the flags that were given.
func givenSettings(flags *pflag.FlagSet) map[string]any {
	given := map[string]any{}
	flags.Visit(func(flag *pflag.Flag) {
		if config.Find(flag.Name) == nil {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			given[flag.Name] = list.GetSlice()
			return
		}
		given[flag.Name] = flag.Value.String()
	})
	return given
}
