package launch

import (
	"context"
	"fmt"
	"math"
	"time"

	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

// engineOptions are options of engines that Beam's SDK for Go cannot name.
var engineOptions = map[string]string{
	// Flink must not run a stage before the stages that it reads from have ended. Else it would wait
	// forever for a stage with several outputs, of which one waits for another; and it would need as many
	// slots as the work has parts. Other engines ignore this.
	"beam:option:execution_mode_for_batch:v1": "BATCH_FORCED",
}

// addEngineOptions makes Beam send engineOptions with a job.
func addEngineOptions() {
	grpcx.Dial = func(ctx context.Context, endpoint string, timeout time.Duration) (*grpc.ClientConn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		// As grpcx.DefaultDial does it, but for the options.
		connection, err := grpc.DialContext(ctx, endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock(), //nolint:staticcheck // NewClient does not wait
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), grpc.WithUnaryInterceptor(withEngineOptions))
		if err != nil {
			return nil, fmt.Errorf("no server answers at %s: %w", endpoint, err)
		}
		return connection, nil
	}
}

func withEngineOptions(
	ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if job, ok := request.(*jobpb.PrepareJobRequest); ok {
		fields := job.GetPipelineOptions().GetFields()
		for name, value := range engineOptions {
			fields[name] = structpb.NewStringValue(value)
		}
	}
	return call(ctx, method, request, reply, connection, options...)
}
