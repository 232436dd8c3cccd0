# The image of a release: the binaries that .ci/release built, which are its context (dist).
FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETOS TARGETARCH
COPY followpress_*_${TARGETOS}_${TARGETARCH}/followpress /usr/local/bin/
EXPOSE 8080 8081
ENTRYPOINT ["followpress"]
CMD ["preview", "--addr", "0.0.0.0:8080"]
