# followpress, static, without a shell and without root:
#   docker build -t followpress .
#   docker run --rm -p 8080:8080 followpress
#   docker run --rm -v "$PWD/out:/site:ro" -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY -e AWS_REGION followpress publish --site /site --dest s3://BUCKET
#   docker run --rm -p 8081:8081 -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY -e AWS_REGION followpress serve --site s3://BUCKET --addr 0.0.0.0:8081
# The small fallback alone is /usr/local/bin/fallback: docker run --entrypoint fallback …
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# With .git, from which `followpress version` gets its version.
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/ ./cmd/followpress ./cmd/fallback

# Certificates, time zones and a user, nothing else.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /usr/local/bin/
EXPOSE 8080 8081
ENTRYPOINT ["followpress"]
CMD ["preview", "--addr", "0.0.0.0:8080"]
