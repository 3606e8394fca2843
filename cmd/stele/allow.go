package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/outbound"
)

// allowedRule returns which addresses a command may connect to: public ones, and those that its flag --allow names.
func allowedRule(cmd *cobra.Command, allow string) (outbound.Rule, error) {
	var allowed []string
	if allow != "" {
		allowed = strings.Split(allow, ",")
	}
	rule, err := outbound.ParseRule(allowed)
	if err != nil {
		return rule, usage.Errorf(cmd, "", "{cause}", err)
	}
	return rule, nil
}
