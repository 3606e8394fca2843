package access

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// UsageSettings says how the use of namespaces is counted.
type UsageSettings interface {
	UsageSettings(ctx context.Context, key stele.NamespaceKey) (registrar.UsageSettings, error)
	SetUsageSettings(ctx context.Context, key stele.NamespaceKey, change func(*registrar.UsageSettings)) (registrar.UsageSettings, error)
}
